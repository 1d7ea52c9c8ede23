#include "widgets/explore/survey_fields.h"

#include <cmath>

#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSlider>
#include <QSpinBox>

#include "schedules/base/text.h"
#include "widgets/literals.h"
#include "widgets/runs/runs_model.h"
#include "widgets/style.h"

namespace stagewright {

SurveyControl makeSurveyControl(const SurveyField& field, QWidget* parent, const std::function<void()>& changed)
{
    SurveyControl out{field, makeLabel(qtText(field.title), "secondary", parent), nullptr, {}, {}};
    const QString title = qtText(field.title), none = qtText(field.none);
    const double start = numberOf(field.fallback).value_or(0);
    QWidget* named = nullptr; // has the value, the name and the focus
    switch (field.kind) {
    case FieldKind::Choice: {
        auto* box = new QComboBox(parent);
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        for (const FieldChoice& choice : field.choices) box->addItem(qtText(choice.title), qtText(choice.value));
        box->view()->setTextElideMode(Qt::ElideNone);
        box->setCurrentIndex(box->findData(qtText(field.fallback)));
        QObject::connect(box, &QComboBox::currentIndexChanged, box, changed);
        out.set = [box](const QString& text) {
            if (const int at = box->findData(text); at >= 0) box->setCurrentIndex(at);
        };
        out.value = [box] { return box->currentData().toString().toStdString(); };
        named = box;
        break;
    }
    case FieldKind::Whole: {
        auto* box = new QSpinBox(parent);
        box->setRange(static_cast<int>(field.least), static_cast<int>(field.most));
        box->setSpecialValueText(none);
        box->setKeyboardTracking(false);
        box->setValue(static_cast<int>(start));
        QObject::connect(box, &QSpinBox::valueChanged, box, changed);
        out.set = [box](const QString& text) { box->setValue(text.toInt()); };
        out.value = [box] { return std::to_string(box->value()); };
        named = box;
        if (!field.doubling) break;
        out.widget = new QWidget(parent);
        auto* row = new QHBoxLayout(out.widget);
        row->setContentsMargins(0, 0, 0, 0);
        auto* slider = new QSlider(Qt::Horizontal, out.widget);
        slider->setRange(static_cast<int>(std::lround(std::log2(field.least))),
                         static_cast<int>(std::lround(std::log2(field.most))));
        slider->setPageStep(1);
        slider->setAccessibleName(title);
        slider->setValue(static_cast<int>(std::lround(std::log2(start))));
        row->addWidget(slider, 1);
        row->addWidget(box);
        QObject::connect(slider, &QSlider::valueChanged, box, [box](int log) { box->setValue(1 << log); });
        QObject::connect(box, &QSpinBox::valueChanged, slider, [slider](int count) {
            const QSignalBlocker quiet(slider);
            slider->setValue(static_cast<int>(std::lround(std::log2(count))));
        });
        break;
    }
    case FieldKind::Real: {
        auto* box = new QDoubleSpinBox(parent);
        box->setRange(field.least, field.most);
        box->setDecimals(0);
        if (!field.unit.empty()) box->setSuffix(u' ' + qtText(field.unit));
        box->setSpecialValueText(none);
        box->setKeyboardTracking(false);
        box->setValue(start);
        QObject::connect(box, &QDoubleSpinBox::valueChanged, box, changed);
        out.set = [box](const QString& text) { box->setValue(text.toDouble()); };
        out.value = [box] { return stagewright::textOf(box->value()); };
        named = box;
        break;
    }
    case FieldKind::Text: {
        auto* line = new QLineEdit(qtText(field.fallback), parent);
        line->setPlaceholderText(none);
        QObject::connect(line, &QLineEdit::textChanged, line, changed);
        out.set = [line](const QString& text) { line->setText(text); };
        out.value = [line] { return line->text().toStdString(); };
        named = line;
        break;
    }
    case FieldKind::Switch: {
        auto* box = new QCheckBox(qtText(field.choices.front().title), parent);
        box->setChecked(field.fallback == "yes");
        QObject::connect(box, &QCheckBox::toggled, box, changed);
        out.set = [box](const QString& text) { box->setChecked(text == u"yes"_s); };
        out.value = [box] { return std::string(box->isChecked() ? "yes" : "no"); };
        named = box;
    }
    }
    if (out.widget == nullptr) out.widget = named;
    out.label->setBuddy(named);
    out.label->setToolTip(qtText(field.help));
    out.widget->setToolTip(qtText(field.help));
    named->setAccessibleName(title);
    named->setObjectName(qtText(field.name));
    return out;
}

} // namespace stagewright
