#include "widgets/library/schedule_browser.h"

#include <algorithm>

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>

#include "widgets/background.h"
#include "widgets/library/schedule_groups.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/style.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr int nameRole = Qt::UserRole;

QLabel* wrapped(const char* role, QWidget* parent)
{
    auto* label = makeLabel({}, role, parent, true);
    label->setWordWrap(true);
    return label;
}

} // namespace

ScheduleBrowser::ScheduleBrowser(const Theme& theme, QWidget* parent) : QDialog(parent), m_theme(theme)
{
    setObjectName(QStringLiteral("newSchedule"));
    setWindowTitle(tr("New schedule from the library"));
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(20, 18, 20, 16);
    outer->setSpacing(12);
    auto* columns = new QHBoxLayout;
    columns->setSpacing(20);
    outer->addLayout(columns, 1);

    auto* left = new QVBoxLayout;
    left->setSpacing(8);
    columns->addLayout(left);
    m_search = new QLineEdit(this);
    m_search->setObjectName(QStringLiteral("search"));
    m_search->setPlaceholderText(tr("Search, also by other tools' names"));
    m_search->setAccessibleName(tr("Search"));
    m_search->setClearButtonEnabled(true);
    m_search->setFixedWidth(262);
    m_search->installEventFilter(this);
    left->addWidget(m_search);
    m_list = new QListWidget(this);
    m_list->setObjectName(QStringLiteral("boxed"));
    m_list->setAccessibleName(tr("Schedules"));
    m_list->setFixedWidth(262);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setTextElideMode(Qt::ElideRight);
    left->addWidget(m_list, 1);
    m_page = new QScrollArea(this);
    m_page->setWidgetResizable(true);
    m_page->setFrameShape(QFrame::NoFrame);
    m_page->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_page->setFocusPolicy(Qt::NoFocus);
    m_page->setWidget(buildPage());
    columns->addWidget(m_page, 1);

    auto* bottom = new QHBoxLayout;
    bottom->setSpacing(8);
    m_fault = wrapped("worse", this);
    m_fault->setObjectName(QStringLiteral("fault"));
    m_nearest = new QPushButton(this);
    m_nearest->setObjectName(QStringLiteral("nearest"));
    m_nearest->setToolTip(tr("The nearest shape that this schedule supports"));
    auto* cancel = new QPushButton(tr("Cancel"), this);
    m_block = new QPushButton(tr("Building block…"), this);
    m_block->setToolTip(tr("The repeated block and its interval; its offsets can be edited"));
    m_train = new QPushButton(tr("Train it…"), this);
    m_train->setToolTip(tr("Opens the record dialog with this schedule and shape"));
    m_create = new QPushButton(tr("Create"), this);
    m_create->setObjectName(QStringLiteral("primary"));
    m_create->setToolTip(tr("Opens it as a simulated run"));
    for (QPushButton* button : {m_nearest, cancel, m_block, m_train}) button->setAutoDefault(false);
    m_create->setDefault(true);
    bottom->addWidget(m_fault, 1);
    bottom->addWidget(m_nearest);
    bottom->addWidget(cancel);
    bottom->addWidget(m_block);
    bottom->addWidget(m_train);
    bottom->addWidget(m_create);
    outer->addLayout(bottom);

    m_wait.setSingleShot(true);
    m_wait.setInterval(60);
    connect(&m_wait, &QTimer::timeout, this, &ScheduleBrowser::ask);
    connect(m_search, &QLineEdit::textChanged, this, &ScheduleBrowser::filter);
    connect(m_list, &QListWidget::currentItemChanged, this, &ScheduleBrowser::showPage);
    connect(cancel, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_create, &QPushButton::clicked, this, [this] {
        emit createAsked(name(), shape(), costs());
        accept();
    });
    connect(m_train, &QPushButton::clicked, this, [this] {
        emit trainAsked(name(), shape());
        accept();
    });
    connect(m_block, &QPushButton::clicked, this, [this] {
        emit blockAsked(name(), shape());
        accept();
    });
    connect(m_nearest, &QPushButton::clicked, this, [this] {
        if (m_preview.nearest) setShape(*m_preview.nearest);
    });
    m_nearest->hide();
    m_block->hide();
    fillList();
    choose(QStringLiteral("1f1b"));
    // it covers the window
    const QSize most = parentWidget() != nullptr ? parentWidget()->window()->size() - QSize(40, 20) : QSize(1180, 800);
    resize(QSize(1180, 800).boundedTo(most));
    m_search->setFocus();
}

ScheduleBrowser::~ScheduleBrowser() = default;

QWidget* ScheduleBrowser::buildPage()
{
    auto* page = new QWidget(this);
    page->setObjectName(QStringLiteral("panelBody"));
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(18, 16, 18, 12);
    layout->setSpacing(8);
    m_title = makeLabel({}, "bigtitle", page, true);
    m_title->setWordWrap(true);
    m_summary = wrapped("value", page);
    layout->addWidget(m_title);
    layout->addWidget(m_summary);
    layout->addSpacing(4);

    m_state = new ViewState(this);
    m_view = new TimelineView(m_state, page);
    m_view->setObjectName(QStringLiteral("preview"));
    m_view->setAccessibleName(tr("Timeline of the schedule"));
    m_view->setTitle(tr("Preview"));
    m_view->setTheme(m_theme);
    m_legend = new Legend(page);
    m_legend->setTheme(m_theme);
    m_drawn = wrapped("faint", page);
    m_drawn->setText(tr("Simulating…"));
    layout->addWidget(m_view);
    layout->addWidget(m_legend);
    layout->addWidget(m_drawn);

    auto* halves = new QHBoxLayout;
    halves->setSpacing(28);
    auto* form = new QGridLayout;
    form->setHorizontalSpacing(10);
    form->setVerticalSpacing(7);
    form->setColumnStretch(1, 1);
    form->setColumnStretch(3, 1);
    int row = 0;
    const auto place = [&](int column, const QString& title, QWidget* field, const QString& tooltip) {
        auto* label = makeLabel(title, "secondary", page);
        label->setBuddy(field);
        for (QWidget* widget : {static_cast<QWidget*>(label), field}) widget->setToolTip(tooltip);
        field->setAccessibleName(title);
        form->addWidget(label, row, column);
        form->addWidget(field, row, column + 1);
    };
    const auto whole = [&](const char* key, int low, int high, int value) {
        auto* box = new QSpinBox(page);
        box->setObjectName(QString::fromLatin1(key));
        box->setRange(low, high);
        box->setValue(value);
        connect(box, &QSpinBox::valueChanged, this, [this] {
            m_wait.start();
            m_pending = true;
        });
        return box;
    };
    const auto real = [&](const char* key, double value) {
        auto* box = new QDoubleSpinBox(page);
        box->setObjectName(QString::fromLatin1(key));
        box->setRange(0, 1000);
        box->setDecimals(2);
        box->setSingleStep(0.25);
        box->setButtonSymbols(QAbstractSpinBox::NoButtons);
        box->setValue(value);
        connect(box, &QDoubleSpinBox::valueChanged, this, [this] {
            m_wait.start();
            m_pending = true;
        });
        return box;
    };
    form->addWidget(makeLabel(tr("Shape"), "title", page), row, 0, 1, 2);
    form->addWidget(makeLabel(tr("Costs, in units"), "title", page), row++, 2, 1, 2);
    m_ranks = whole("ranks", 1, 2048, 4);
    m_microbatches = whole("microbatches", 1, 4096, 8);
    m_chunks = whole("chunks", 0, 64, 0);
    m_chunks->setSpecialValueText(tr("schedule default"));
    m_forward = real("forward", 1);
    m_forward->setMinimum(0.01);
    m_input = real("inputGrad", 1);
    m_weight = real("weightGrad", 1);
    m_latency = real("latency", 0);
    place(0, tr("Ranks"), m_ranks, tr("Devices, each with a part of the model."));
    place(2, tr("Forward F"), m_forward, tr("Time of F for one microbatch over a rank's share of the model."));
    ++row;
    place(0, tr("Microbatches"), m_microbatches, tr("Parts of a batch that run one after another."));
    place(2, tr("Input gradient I"), m_input,
          tr("Time of I; zero-bubble papers call it B. A full backward takes I + W."));
    ++row;
    place(0, tr("Stages per rank"), m_chunks, tr("Chunks per rank; schedules with a fixed number ignore it."));
    place(2, tr("Weight gradient W"), m_weight, tr("Time of W."));
    ++row;
    place(2, tr("Link latency"), m_latency, tr("Time of a message between ranks."));
    m_parameterBox = new QWidget(page);
    m_parameters = new QGridLayout(m_parameterBox);
    m_parameters->setContentsMargins(0, 8, 0, 0);
    m_parameters->setHorizontalSpacing(10);
    m_parameters->setVerticalSpacing(7);
    m_parameters->setColumnStretch(2, 1);
    auto* fields = new QVBoxLayout;
    fields->addLayout(form);
    fields->addWidget(m_parameterBox);
    fields->addStretch(1);
    halves->addLayout(fields, 5);
    m_figures = new PanelSection(tr("Figures"), page);
    m_figures->setRuled(false);
    m_figures->setTheme(m_theme);
    auto* right = new QVBoxLayout;
    right->addWidget(m_figures);
    right->addStretch(1);
    halves->addLayout(right, 4);
    layout->addLayout(halves);

    const auto text = [&](const QString& title, const char* role) {
        layout->addWidget(makeLabel(title, "title", page));
        auto* label = wrapped(role, page);
        layout->addWidget(label);
        return label;
    };
    m_constraints = text(tr("Constraints"), "value");
    m_formulas = text(tr("Formulas"), "code");
    m_paper = text(tr("Paper"), "value");
    m_aliases = text(tr("Other names"), "secondary");
    layout->addStretch(1);
    return page;
}

void ScheduleBrowser::fillList()
{
    std::array<std::vector<const ScheduleInfo*>, scheduleGroupCount> groups;
    for (const ScheduleInfo& info : allSchedules()) groups[static_cast<std::size_t>(groupOf(info))].push_back(&info);
    for (std::size_t g = 0; g < groups.size(); ++g) {
        if (groups[g].empty()) continue;
        auto* head = new QListWidgetItem(titleOf(static_cast<ScheduleGroup>(g)), m_list);
        head->setFlags(Qt::NoItemFlags);
        QFont font = fontOf(FontRole::Small);
        font.setWeight(QFont::DemiBold);
        head->setFont(font);
        for (const ScheduleInfo* info : groups[g]) {
            auto* item = new QListWidgetItem(words(info->title).section(QLatin1String(" ("), 0, 0), m_list);
            item->setData(nameRole, words(info->name));
            item->setToolTip(words(info->title) + QLatin1Char('\n') + words(info->summary));
        }
    }
}

void ScheduleBrowser::filter()
{
    QListWidgetItem* head = nullptr;
    QListWidgetItem* first = nullptr;
    for (int i = 0; i < m_list->count(); ++i) {
        QListWidgetItem* item = m_list->item(i);
        const QString key = item->data(nameRole).toString();
        if (key.isEmpty()) {
            head = item;
            head->setHidden(true);
            continue;
        }
        const auto info = findSchedule(key.toStdString());
        const bool shown = info && matches(**info, m_search->text());
        item->setHidden(!shown);
        if (!shown) continue;
        if (head != nullptr) head->setHidden(false);
        if (first == nullptr) first = item;
    }
    if (first != nullptr && (m_list->currentItem() == nullptr || m_list->currentItem()->isHidden()))
        m_list->setCurrentItem(first);
}

QStringList ScheduleBrowser::listed() const
{
    QStringList names;
    for (int i = 0; i < m_list->count(); ++i)
        if (!m_list->item(i)->isHidden() && !m_list->item(i)->data(nameRole).toString().isEmpty())
            names << m_list->item(i)->data(nameRole).toString();
    return names;
}

void ScheduleBrowser::choose(const QString& name)
{
    for (int i = 0; i < m_list->count(); ++i) {
        if (m_list->item(i)->data(nameRole).toString() != name) continue;
        m_list->setCurrentItem(m_list->item(i));
        m_list->scrollToItem(m_list->item(i), QAbstractItemView::PositionAtCenter);
    }
}

bool ScheduleBrowser::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_search && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Down || key->key() == Qt::Key_Up || key->key() == Qt::Key_PageDown ||
            key->key() == Qt::Key_PageUp) {
            QCoreApplication::sendEvent(m_list, event); // the arrow keys move in the list while typing
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace stagewright
