#include "widgets/tools/factor_field.h"

#include <algorithm>
#include <cmath>

#include <QHBoxLayout>
#include <QSignalBlocker>

#include "widgets/literals.h"

namespace stagewright {

namespace {
constexpr int middle = 100; // of the slider; left of it 0 … 1, right of it 1 … 4
constexpr double most = 4;
} // namespace

FactorField::FactorField(QWidget* parent)
    : QWidget(parent), m_slider(new QSlider(Qt::Horizontal, this)), m_field(new QDoubleSpinBox(this))
{
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(8);
    layout->addWidget(m_slider, 1);
    layout->addWidget(m_field);
    m_slider->setRange(0, 2 * middle);
    m_slider->setPageStep(10);
    m_slider->setMinimumWidth(60);
    m_field->setRange(0, 1000);
    m_field->setDecimals(2);
    m_field->setSingleStep(0.05);
    m_field->setPrefix(u"× "_s);
    m_field->setButtonSymbols(QAbstractSpinBox::NoButtons);
    m_field->setAlignment(Qt::AlignRight);
    m_field->setFixedWidth(72);
    setFocusProxy(m_slider);
    setFactor(1);
    connect(m_slider, &QSlider::valueChanged, this, [this](int place) {
        const QSignalBlocker quiet(m_field);
        m_field->setValue(factorAt(place));
        emit changed();
    });
    connect(m_field, &QDoubleSpinBox::valueChanged, this, [this](double factor) {
        const QSignalBlocker quiet(m_slider);
        m_slider->setValue(placeOf(factor));
        emit changed();
    });
}

void FactorField::setFactor(double factor)
{
    const QSignalBlocker quiet(m_slider); // the field moves it
    m_field->setValue(factor);
    m_slider->setValue(placeOf(factor));
}

int FactorField::placeOf(double factor)
{
    if (factor <= 1) return static_cast<int>(std::lround(factor * middle));
    return middle + static_cast<int>(std::lround((std::min(factor, most) - 1) / (most - 1) * middle));
}

double FactorField::factorAt(int place)
{
    if (place <= middle) return static_cast<double>(place) / middle;
    return 1 + (most - 1) * static_cast<double>(place - middle) / middle;
}

} // namespace stagewright
